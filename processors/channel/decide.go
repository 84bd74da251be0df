package channel

import (
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

// Action is what is to be done with an event.
type Action string

// The actions.
const (
	// Refuse: nothing is done, and the person is not told. outcome.Reason says why.
	Refuse Action = "refuse"
	// Slow: the person is told that the rate limit is reached.
	Slow Action = "slow"
	// TooLong: the person is told that the text is too long.
	TooLong Action = "too_long"
	// Run: outcome.Command is run.
	Run Action = "command"
	// Press: the button of a request for approval was pressed.
	Press Action = "decision"
	// Ask: the text is a message to the agent.
	Ask Action = "message"
)

// Reason says why an event is refused.
type Reason string

// The reasons.
const (
	// NoAccount: the account is not in the settings.
	NoAccount Reason = "account_unknown"
	// DMIgnored and DMNotAllowed: the account does not answer direct messages, or not those of the person.
	DMIgnored    Reason = "dm_ignored"
	DMNotAllowed Reason = "dm_not_allowed"
	// GroupIgnored, GroupNoMention and GroupNoCommand: the account answers no messages of groups, only those that address it, or
	// only commands.
	GroupIgnored   Reason = "group_ignored"
	GroupNoMention Reason = "group_not_mentioned"
	GroupNoCommand Reason = "group_no_command"
	// TooMany: the rate limit is reached, and the person was told in the last 60 seconds.
	TooMany Reason = "rate_limited"
	// Empty: the message has no text.
	Empty Reason = "empty"
	// NoAgent: no agent that is served is named for the event.
	NoAgent Reason = "no_agent"
)

// outcome is what is to be done with an event.
type outcome struct {
	Action Action
	Reason Reason // of Refuse
	// Origin is the event's, in the thread that the message starts, if it starts one. Answers go there.
	Origin topics.Origin
	// Agent is who is to answer. It is set unless the action is Refuse.
	Agent   string
	Account Account
	Command instruction // of Run
	// Approver says that the person may decide about requests of others in the same conversation.
	Approver bool
}

// rules are what decide needs beside the settings.
type rules struct {
	// Serves reports whether an agent can be passed messages. An agent for which it is false is skipped when a message is routed.
	Serves func(agent string) bool
	// MaxText is the longest text of a message in bytes.
	MaxText int
}

// decide says what is to be done with an event at a time. w is the window of the person at the account, see personOf, and so is
// the one that is returned. A repeat of an event that is in the window is not counted again. decide does not change w.
func decide(s *Settings, rules rules, in adapter.Inbound, w window, now time.Time) (outcome, window) {
	out := outcome{Origin: in.Origin}
	var known bool
	if out.Account, known = s.Account(in.Origin.Channel, in.Origin.Account); !known {
		return out.refuse(NoAccount), w
	}
	command, isCommand := parseCommand(in)
	if reason := admit(out.Account, in, isCommand); reason != "" {
		return out.refuse(reason), w
	}
	w, verdict := w.take(out.Account.RateLimit, in.Event, now)
	if verdict == reject {
		return out.refuse(TooMany), w
	}
	if out.Account.Threading {
		out.Origin = startThread(in)
	}
	out.Approver = in.Origin.User != "" && slices.Contains(out.Account.Approvers, in.Origin.User)
	switch {
	case verdict == tell:
		out.Action = Slow
	case in.Decision != nil:
		out.Action = Press
	case len(in.Text) > rules.MaxText:
		out.Action = TooLong
	case isCommand:
		out.Action, out.Command = Run, command
	case strings.TrimSpace(in.Text) == "":
		return out.refuse(Empty), w
	default:
		out.Action = Ask
	}
	if out.Agent = routeOf(s, out.Account, in, rules.Serves); out.Agent == "" {
		return out.refuse(NoAgent), w
	}
	return out, w
}

func (o outcome) refuse(r Reason) outcome {
	o.Action, o.Reason = Refuse, r
	return o
}

// admit applies the policies for direct messages and groups.
func admit(a Account, in adapter.Inbound, isCommand bool) Reason {
	if !in.Origin.Group {
		switch a.DM {
		case DMRespond, "":
			return ""
		case DMAllowedOnly:
			if in.Origin.User != "" && slices.Contains(a.Allowed, in.Origin.User) {
				return ""
			}
			return DMNotAllowed
		default:
			return DMIgnored
		}
	}
	asked := isCommand || in.Decision != nil
	switch a.Group {
	case GroupAll:
		return ""
	case GroupMentionOnly, "":
		if in.Mentioned || asked {
			return ""
		}
		return GroupNoMention
	case GroupCommandsOnly:
		if asked {
			return ""
		}
		return GroupNoCommand
	default:
		return GroupIgnored
	}
}

// startThread returns the origin of a message with the thread that it starts. A pressed button starts none: the request that
// it is about was asked where it was pressed.
func startThread(in adapter.Inbound) topics.Origin {
	o := in.Origin
	if o.Group && o.Thread == "" && in.Decision == nil {
		o.Thread = o.MessageID
	}
	return o
}
