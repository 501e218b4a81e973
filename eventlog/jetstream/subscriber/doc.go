// Package subscriber gives NATS clients, over TCP or WebSocket, the right to receive one
// session's live records and nothing else.
//
// The right is a user JWT, signed by an account's key: subscribe to the session's live
// subject, publish nothing. Until the JWT expires, a server accepts it from any client
// that can sign with the seed that belongs to it; then the connection ends. Two kinds of
// servers accept it: one in operator mode that has the account, and the embedded one,
// which knows only the key.
//
// Not promised: a JetStream consumer reads everything that its creator has configured,
// whatever the creator may subscribe to. The account must prevent that a client creates
// one: it must have neither JetStream nor an import of its API.
//
// [Revocations] revoke rights on the embedded servers. In operator mode helixd does not
// decide who connects: there the owner of the account revokes its users.
package subscriber
