// Package restore writes copied sessions into a deployment without a log. Records keep
// their sequences, and later ones begin far after the lost log's end, so that a client's
// cursor never means another record. No node can open the log until the restore is
// finished.
package restore
