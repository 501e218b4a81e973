// Package feed yields all records of a partition in order, for read models. It uses one
// consumer on the server per feed, and replaces a consumer that was lost, so that no
// record is left out or repeated. If records at the end were removed before they were
// yielded, it yields a position without a record.
package feed
