// Package lab tries changed agents on recorded sessions.
//
// [Run] drives agents with the inputs of each session of a cohort, in a log in memory. What the
// agents ask for is answered from the records, by content: a model's answer by the messages, a
// tool's result by the tool and its arguments, memories by the query, a person's decision by the
// call. Equal questions get the recorded answers in their order. The clock stands still. Nothing
// outside of the process is asked, unless the options name it.
//
// In a test of Go's, [Check] fails it for each regression.
package lab
