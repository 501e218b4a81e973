// Package sizing estimates what disk, memory and cores a load needs, from measured constants.
// docs/operations/sizing.md explains the formulas.
package sizing
