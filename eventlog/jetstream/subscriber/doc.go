// Package subscriber gives NATS clients, over TCP or WebSocket, the right to
// hear one session and nothing else.
//
// The right is a user JWT, signed by an account's key: subscribe to the
// session's live subject, publish nothing. A server takes it from whoever can
// sign with the seed that comes with it, until it expires; a connection ends
// then. Two kinds of servers do: one in operator mode that has the account,
// and the embedded one, which knows the key alone.
//
// What it does not promise: JetStream consumers read whatever their maker
// says, whatever he may subscribe to. That a client can't make one is up to
// the account, which must have neither JetStream nor an import of its API.
//
// [Revocations] revoke the rights to hear a session on the embedded servers. In
// operator mode helixd does not decide who connects: there the owner of the
// account revokes its users.
package subscriber
