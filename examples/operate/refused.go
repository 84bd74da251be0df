package main

import (
	"slices"
	"strings"
)

// refused says why requeue --all leaves a letter out although it can be written back: the group refused its record, or the record ends
// what it finds. Written back, it is a new record, which can take effect this time: a late cancel ends the turn that is open now, and a
// repeated message runs a second turn once its request ID is forgotten. So someone must look at it and give its ID. It returns "" for
// other letters.
func (o *operator) refused(l *letter) string {
	switch catalog := o.cluster.catalog; {
	case l.Source.Topic == catalog.SessionControl.Name():
		return "it would end or purge what the session has now: give its ID"
	case l.tombstone && l.Source.Topic == catalog.ThinkRequestResponse.Name():
		return "it would clear the conversation that the session has now: give its ID"
	case byRule(l.Reason):
		return "the group refused it, it did not fail (" + clean(l.Reason) + "): give its ID"
	}
	return ""
}

// rules are the packages whose reasons begin with their names.
var rules = []string{"turn", "fold", "gate", "delivery", "peer", "channel", "memoir"}

// failures end or are in the reasons of those packages that are about a defect or a row, not about the record.
var failures = []string{"cannot be applied", "cannot be decoded"}

// byRule reports whether a reason is that of a rule.
func byRule(reason string) bool {
	name, _, found := strings.Cut(reason, ": ")
	return found && slices.Contains(rules, name) &&
		!slices.ContainsFunc(failures, func(f string) bool { return strings.Contains(reason, f) })
}
