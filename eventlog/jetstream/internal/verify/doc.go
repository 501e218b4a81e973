// Package verify checks everything that the streams have of a session, and reports what
// is wrong: in records, in the links between them, in segments and in blobs. It changes
// nothing and does not stop at the first problem. It may run while others append; it
// ignores what is stored after its start.
package verify
