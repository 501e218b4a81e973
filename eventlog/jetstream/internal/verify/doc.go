// Package verify checks all that the streams have of a session, and reports what is wrong.
package verify
