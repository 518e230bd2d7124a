package activate

import (
	"reflect"
	"testing"
)

func TestChangedGrant(t *testing.T) {
	for _, tt := range []struct {
		name        string
		was         Grant
		allow, deny []string
		want        Grant
	}{
		{"deny", Grant{}, nil, []string{"a"}, Grant{Deny: []string{"a"}}},
		{"deny twice", Grant{Deny: []string{"a"}}, nil, []string{"a", "b"}, Grant{Deny: []string{"a", "b"}}},
		{"allow ends a denial", Grant{Deny: []string{"a", "b"}}, []string{"a"}, nil, Grant{Deny: []string{"b"}}},
		{"allow where all are", Grant{}, []string{"a"}, nil, Grant{}},
		{"allow adds to a list", Grant{Allow: []string{"a"}}, []string{"b", "a"}, nil, Grant{Allow: []string{"a", "b"}}},
		{"deny from a list", Grant{Allow: []string{"a", "b"}}, nil, []string{"b"}, Grant{Allow: []string{"a", "b"}, Deny: []string{"b"}}},
	} {
		if got := changedGrant(tt.was, tt.allow, tt.deny); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
