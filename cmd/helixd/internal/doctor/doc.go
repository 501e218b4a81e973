// Package doctor looks at what helixd serve would run on, or runs on, and says what to
// change.
package doctor
