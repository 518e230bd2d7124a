// Command empty does nothing: the anchor of cold starts.
package main

func main() {}
