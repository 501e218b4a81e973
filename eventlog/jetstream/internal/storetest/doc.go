// Package storetest has what the tests of a log share: a server, records, and checks.
package storetest
