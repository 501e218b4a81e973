// Package settings turns the configuration into the options of the packages that a
// daemon is made of, and says which of its settings are unsafe.
package settings
