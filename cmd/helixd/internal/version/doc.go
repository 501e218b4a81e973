// Package version tells which build of helixd this is.
package version
