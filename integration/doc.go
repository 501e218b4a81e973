// Package integration holds the tests of the whole: real servers, real HTTP,
// real processes.
package integration
