// Command alerts breaks daemons on purpose and lets Prometheus' own code evaluate the rules that a
// release has: each alert must fire for its fault within its time, and none may fire before, nor at the
// deployment that nobody breaks. README.md says how.
package main
