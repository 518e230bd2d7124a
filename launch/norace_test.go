//go:build !race

package launch

const raced = false
