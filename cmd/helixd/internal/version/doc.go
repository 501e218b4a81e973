// Package version says which build of helixd this is.
package version
