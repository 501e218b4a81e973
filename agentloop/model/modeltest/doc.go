// Package modeltest stands in for a language-model provider in tests: an HTTP
// server that answers with recorded or hand-written streams, framed as the
// provider frames them, and keeps the requests that it got.
//
// It chooses the answer by what the request holds, not by counting requests: a
// daemon under test is killed and asks again, and a loop retries.
//
// [Adapter] is the contract that every adapter's tests run.
package modeltest
