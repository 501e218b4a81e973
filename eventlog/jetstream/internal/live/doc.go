// Package live hands live records to followers, and finds those that were lost on the way.
package live
