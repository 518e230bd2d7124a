package launch

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// TestToolsWithoutEnd holds that the launcher's own walk through a list of tools that never ends does.
func TestToolsWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t, options(), false)
		b.greet(`{"tools":{}}`)
		b.up.in.taken()
		asked := b.send(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"connector://mail/status"}}`)
		got, pages := "", 0
		for ; got == "" && pages < 1000; pages++ {
			if b.steady(asked) != fmt.Sprintf(`{"jsonrpc":"2.0","id":"OWN/%d","method":"tools/list","params":`, pages+1)+[]string{"{}", `{"cursor":"on"}`}[min(pages, 1)]+"}\n" {
				t.Fatalf("page %d: it asked %s", pages+1, asked)
			}
			io.WriteString(b.up.out, fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s%d","result":{"tools":[{"name":"t%d"}],"nextCursor":"on"}}`+"\n", b.s.ownID, pages+1, pages+1))
			synctest.Wait()
			got, asked = b.out.taken(), b.up.in.taken()
		}
		if pages != maxPages || strings.Count(got, `\"t`) != maxPages+1 { // and "tools"
			t.Errorf("%d pages; the status is %s", pages, got)
		}
		b.end()
	})
}
