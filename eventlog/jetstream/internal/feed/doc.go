// Package feed hands out all records of a partition, for read models.
package feed
