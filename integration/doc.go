// Package integration tests helixd as a whole: with real servers, real HTTP and real processes.
package integration
