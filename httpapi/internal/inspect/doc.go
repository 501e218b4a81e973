// Package inspect answers questions about sessions, and changes nothing.
package inspect
