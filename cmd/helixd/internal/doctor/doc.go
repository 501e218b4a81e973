// Package doctor checks what helixd serve runs on, or would run on, and says what to change.
package doctor
