package activate

import (
	"reflect"
	"skald-connectors/activate/record"
	"testing"
)

func TestChangedGrant(t *testing.T) {
	for _, tt := range []struct {
		name        string
		was         record.Grant
		allow, deny []string
		want        record.Grant
	}{
		{"deny", record.Grant{}, nil, []string{"a"}, record.Grant{Deny: []string{"a"}}},
		{"deny twice", record.Grant{Deny: []string{"a"}}, nil, []string{"a", "b"}, record.Grant{Deny: []string{"a", "b"}}},
		{"allow ends a denial", record.Grant{Deny: []string{"a", "b"}}, []string{"a"}, nil, record.Grant{Deny: []string{"b"}}},
		{"allow where all are", record.Grant{}, []string{"a"}, nil, record.Grant{}},
		{"allow adds to a list", record.Grant{Allow: []string{"a"}}, []string{"b", "a"}, nil, record.Grant{Allow: []string{"a", "b"}}},
		{"deny from a list", record.Grant{Allow: []string{"a", "b"}}, nil, []string{"b"}, record.Grant{Allow: []string{"a", "b"}, Deny: []string{"b"}}},
	} {
		if got := changedGrant(tt.was, tt.allow, tt.deny); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
