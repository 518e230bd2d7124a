package mount

import (
	"bytes"
	"fmt"
	"strings"
)

// unifiedDiff shows what changes in a file, as diff -U1 would. Our edits are close to
// each other, so one hunk holds them.
func unifiedDiff(file string, before, after []byte, removed bool) string {
	if bytes.Equal(before, after) && !removed {
		return ""
	}
	from, to := file, file
	if before == nil {
		from = "/dev/null"
	}
	if removed {
		to, after = "/dev/null", nil
	}
	a, b := lines(before), lines(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	const context = 1
	begin, more := max(head-context, 0), min(tail, context)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", from, to)
	fmt.Fprintf(&out, "@@ -%s +%s @@\n", hunkRange(begin, len(a)-tail+more), hunkRange(begin, len(b)-tail+more))
	put := func(sign string, part []string) {
		for _, l := range part {
			out.WriteString(sign + strings.TrimSuffix(l, "\n") + "\n")
			if !strings.HasSuffix(l, "\n") {
				out.WriteString("\\ No newline at end of file\n")
			}
		}
	}
	put(" ", a[begin:head])
	put("-", a[head:len(a)-tail])
	put("+", b[head:len(b)-tail])
	put(" ", a[len(a)-tail:len(a)-tail+more])
	return out.String()
}

// lines splits behind each line end.
func lines(data []byte) []string {
	parts := strings.SplitAfter(string(data), "\n")
	if parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

func hunkRange(begin, end int) string {
	if end == begin {
		return fmt.Sprintf("%d,0", begin)
	}
	return fmt.Sprintf("%d,%d", begin+1, end-begin)
}
