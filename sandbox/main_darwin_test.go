package sandbox

// awkwardHere has no children of its own on macOS.
var awkwardHere map[string]func(args []string)

func prepareHere() error { return nil }
