package exactjson

import "iter"

// ArrayElements streams the byte ranges of the elements of the top-level
// member key.
func ArrayElements(src []byte, key string) iter.Seq2[[2]int, error] {
	return func(yield func([2]int, error) bool) {
		yield([2]int{}, syntaxError(src, 0, "not implemented"))
	}
}
