package channel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

// ParseSettings reads settings from YAML. The error names the line of each mistake, wraps ErrSettings, and does not quote values. An
// empty document has no accounts.
func ParseSettings(content []byte) (*Settings, error) {
	s, _, err := parse(content)
	return s, err
}

// parse also reports an empty document.
func parse(content []byte) (s *Settings, blank bool, err error) {
	if len(content) > maxSize {
		return nil, false, fmt.Errorf("%w: more than %d bytes", ErrSettings, maxSize)
	}
	dec := yaml.NewDecoder(bytes.NewReader(content))
	var document yaml.Node
	if err := dec.Decode(&document); errors.Is(err, io.EOF) || err == nil && empty(document) {
		return &Settings{}, true, nil
	} else if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("%w: more than one document", ErrSettings)
	}
	r := &reader{}
	s = r.settings(document.Content[0])
	if err := errors.Join(r.mistakes...); err != nil {
		return nil, false, err
	}
	return s, false, nil
}

func empty(document yaml.Node) bool {
	return len(document.Content) == 0 || document.Content[0].Kind == yaml.ScalarNode && document.Content[0].ShortTag() == "!!null"
}

func (r *reader) settings(n *yaml.Node) *Settings {
	o := r.object(n, n.Line, "accounts", "bindings", "agents", "default_agent")
	s := &Settings{}
	for _, m := range o.elements("agents") {
		s.Agents = append(s.Agents, r.agent(s, m))
	}
	s.DefaultAgent = s.agentOf(o, "default_agent")
	for _, m := range o.elements("accounts") {
		s.Accounts = append(s.Accounts, r.account(s, m))
	}
	for _, m := range o.elements("bindings") {
		s.Bindings = append(s.Bindings, r.binding(s, m))
	}
	return s
}

func (r *reader) agent(s *Settings, m member) Agent {
	o := r.object(m.node, m.line, "name", "description")
	a := Agent{Name: o.name("name"), Description: o.text("description", maxSettingsPrompt)}
	o.required("name")
	if a.Name != "" {
		switch _, err := topics.For(a.Name); {
		case err != nil:
			o.fail("name", "no topics can have it as their prefix")
		case s.hasAgent(a.Name):
			o.fail("name", "repeated")
		}
	}
	return a
}

func (s *Settings) hasAgent(name string) bool {
	return slices.ContainsFunc(s.Agents, func(a Agent) bool { return a.Name == name })
}

// agentOf reads the name of an agent that is listed.
func (s *Settings) agentOf(o *object, name string) string {
	agent := o.name(name)
	if agent != "" && !s.hasAgent(agent) {
		o.fail(name, "not in agents")
	}
	return agent
}

// unthreaded are platforms on which a thread that is named after a message cannot be answered: Telegram's threads are topics of
// forums (https://core.telegram.org/bots/api#sendmessage), and Discord's are channels that are created by a request
// (https://discord.com/developers/docs/topics/threads). In Teams, a message of a channel says its thread, and group chats have
// none: the answer would be outside of the thread, where nobody could decide about its requests for approval.
var unthreaded = []string{"telegram", "discord", "teams"}

func (r *reader) account(s *Settings, m member) Account {
	o := r.object(m.node, m.line, "channel", "name", "agent", "prompt", "dm", "group", "allowed", "approvers", "rate_limit",
		"threading", "format", "prefix", "quiet_errors")
	a := Account{
		Channel: o.word("channel"), Name: o.word("name"),
		Agent: s.agentOf(o, "agent"), Prompt: o.text("prompt", maxSettingsPrompt),
		DM:      choice(o, "dm", DMRespond, DMAllowedOnly, DMIgnore),
		Group:   choice(o, "group", GroupMentionOnly, GroupAll, GroupCommandsOnly, GroupIgnore),
		Allowed: o.names("allowed"), Approvers: o.names("approvers"),
		RateLimit: o.number("rate_limit", maxRate), Threading: o.boolean("threading"),
		Format:      choice(o, "format", "", text.Markdown, text.DiscordMarkdown, text.TelegramHTML, text.SlackMrkdwn, text.Plain),
		Prefix:      choice(o, "prefix", PrefixOff, PrefixBracket, PrefixBoldBracket),
		QuietErrors: o.boolean("quiet_errors"),
	}
	o.required("channel")
	o.required("name")
	if _, repeated := s.Account(a.Channel, a.Name); repeated && a.Channel != "" && a.Name != "" {
		o.fail("name", "another account of the channel has it")
	}
	if a.Agent == "" && s.DefaultAgent == "" {
		r.fail(o.line, "agent: missing, and there is no default_agent")
	}
	if a.Threading && slices.Contains(unthreaded, a.Channel) {
		o.fail("threading", "the platform does not start a thread by the ID of a message")
	}
	if a.DM == DMAllowedOnly && len(a.Allowed) == 0 {
		o.fail("dm", "allowed_only without anyone in allowed; want ignore")
	}
	return a
}

func (r *reader) binding(s *Settings, m member) Binding {
	o := r.object(m.node, m.line, "agent", "channel", "account", "peer", "guild", "channel_id", "roles")
	b := Binding{
		Agent: s.agentOf(o, "agent"), Channel: o.word("channel"), Account: o.word("account"),
		Peer: o.name("peer"), Guild: o.name("guild"), ChannelID: o.name("channel_id"), Roles: o.names("roles"),
	}
	o.required("agent")
	if _, ok := o.members["roles"]; ok && len(b.Roles) == 0 {
		o.fail("roles", "no role")
	}
	if len(o.seen) == 1 && o.seen["agent"] {
		r.fail(o.line, "a binding without a condition; want default_agent")
	}
	if (b.Channel != "" || b.Account != "") && !s.anyAccount(b) {
		r.fail(o.line, "no account is the one of the binding")
	}
	return b
}

// anyAccount reports whether a binding's channel and account are those of some account.
func (s *Settings) anyAccount(b Binding) bool {
	return slices.ContainsFunc(s.Accounts, func(a Account) bool {
		return (b.Channel == "" || b.Channel == a.Channel) && (b.Account == "" || b.Account == a.Name)
	})
}
