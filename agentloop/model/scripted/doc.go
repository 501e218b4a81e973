// Package scripted is a model that says what it was told to say: for tests,
// and for demos that need no key.
//
// It keeps no state. What it says follows from the conversation alone, so that
// a run that is resumed elsewhere, or a call that is made again, continues right.
package scripted
