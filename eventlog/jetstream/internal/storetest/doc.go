// Package storetest has what the tests of a log share: a server, records, and what is required of them.
package storetest
