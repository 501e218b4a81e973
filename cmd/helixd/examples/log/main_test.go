package main

import "os"

func Example() {
	dir, err := os.MkdirTemp("", "helix")
	must(err)
	defer os.RemoveAll(dir)
	run(dir, "talk")
	// Output:
	// superseded: true
	// "Hello, "
	// "Ada."
	// " And good night."
}
