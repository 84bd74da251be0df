// Package approval says which tool calls need a person's approval. A Policy is plain values, in Go or in a YAML file (package
// policyfile), and Evaluate is a pure function of a policy and a call. Package turn evaluates a policy before it hands out a
// call, and package gate evaluates it again when a request arrives and when a decision is applied.
//
//	allow  the call runs
//	ask    the call waits until a person approves or denies it, or until its deadline
//	deny   the call does not run, whatever a person says
//
// # Which rule applies
//
// The most specific rule whose conditions hold decides. A rule that names a tool exactly is more specific than one with a
// pattern, a pattern with more literal characters is more specific than one with fewer, and of two rules for the same names
// the one with more conditions is more specific. Of rules that are equally specific the strictest decides: deny, then ask,
// then allow.
//
// A call that no rule matches is allowed if its tool is listed in ReadOnly, and otherwise has the effect of Default, which is
// ask: a tool that is not known to only read counts as one that writes.
//
// A condition that cannot be evaluated, such as a bound on a text, denies the call.
//
// Prefer rules that allow within bounds, with the default ask, over rules that deny beyond them. A pointer names a member by its
// exact name: {"Cents":5000} has no /cents, although a tool whose JSON decoder ignores case, as Go's encoding/json does, reads
// it as one.
package approval
