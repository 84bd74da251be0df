package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// parts are the parts of the program that run in this process: the group of the turn, with those of gates and memories; chat,
// callbacks and decisions over HTTP; the WebSocket; and deliveries, which are two groups and a sink.
type parts struct{ turn, doors, websocket, sink bool }

// readParts reads PARTS. Without it, all parts that are configured run. A part that is named and not configured is an
// error: without PORT, for example, nobody could reach the doors.
func readParts() (parts, error) {
	needs := []struct{ part, variable string }{
		{"turn", ""}, {"doors", "PORT"}, {"websocket", "WS_PORT"}, {"sink", "ALLOWED_HOST_MAPPING"},
	}
	named, all := list("PARTS", ""), variable("PARTS") == ""
	var errs []error
	run := map[string]bool{}
	valid := make([]string, len(needs))
	for i, n := range needs {
		valid[i] = n.part
		set := n.variable == "" || variable(n.variable) != ""
		run[n.part] = slices.Contains(named, n.part) || all && set
		if run[n.part] && !set {
			errs = append(errs, fmt.Errorf("PARTS names %s, and %s is not set", n.part, n.variable))
		}
	}
	for _, part := range named {
		if !all && !slices.Contains(valid, part) {
			errs = append(errs, fmt.Errorf("PARTS: %q is no part, want some of %s", part, strings.Join(valid, ",")))
		}
	}
	return parts{run["turn"], run["doors"], run["websocket"], run["sink"]}, errors.Join(errs...)
}

// groups reports whether the process has group tables.
func (p parts) groups() bool { return p.turn || p.sink }

// listens reports whether the process has doors for clients.
func (p parts) listens() bool { return p.doors || p.websocket }

func (p parts) names() (names []string) {
	for name, is := range map[string]bool{
		"turn": p.turn, "chat and tool callbacks": p.doors, "websocket": p.websocket, "deliveries": p.sink,
	} {
		if is {
			names = append(names, name)
		}
	}
	return names
}
