package exactjson

// What an arena begins with: the members are guessed by the colons, so that an
// entry of an index fits at once and a small document stays small.
const (
	firstMembers = 64
	firstItems   = 12
)

// arena holds the members (or items) of a document. Those of containers that
// are still open are a stack at its front; when a container ends, its part moves
// to the back, where it stays. A document so costs few allocations, and the
// memory of an arena that is full stays in use by what was moved there.
type arena[T any] struct {
	buf  []T
	top  int // the stack is buf[:top]
	back int // what stays is buf[back:]
	// first is the size to begin with.
	first int
}

func (a *arena[T]) push(v *T) {
	if a.top == a.back {
		bigger := make([]T, max(a.first, 2*a.top, 1))
		copy(bigger, a.buf[:a.top])
		a.buf, a.back = bigger, len(bigger)
	}
	a.buf[a.top] = *v
	a.top++
}

// keep moves the stack above base to the back. The result never grows in place.
func (a *arena[T]) keep(base int) []T {
	n := a.top - base
	if n == 0 {
		return nil
	}
	from := a.back - n
	kept := a.buf[from:a.back:a.back]
	copy(kept, a.buf[base:a.top])
	a.top, a.back = base, from
	return kept
}
