package main

import "os"

func Example() {
	dir, err := os.MkdirTemp("", "helix")
	must(err)
	defer os.RemoveAll(dir)
	run(dir, "s1")
	// Output:
	// I have greeted Ada.
	// completed {"greeted":["Ada"]}
}
