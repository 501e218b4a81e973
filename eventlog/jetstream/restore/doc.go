// Package restore writes copied sessions into a deployment that has none. They keep their sequences.
package restore
