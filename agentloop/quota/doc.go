// Package quota bounds what tenants use.
//
// A tenant is a team or a customer: the name that a caller's token or JWT has. A
// session belongs to the tenant whose caller created it, for good, as its first
// record states. Forks and sub-agents belong to the tenant of the session that
// they come from.
package quota
