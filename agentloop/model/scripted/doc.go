// Package scripted is a model that answers from a list: for tests,
// and for demos that need no key.
//
// It keeps no state. What it says follows from the conversation alone, so that
// a run that is resumed elsewhere, or a call that is made again, continues right.
package scripted
