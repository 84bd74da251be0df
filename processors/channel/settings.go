package channel

import (
	"errors"

	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

// ErrSettings is wrapped by errors about the content of a file.
var ErrSettings = errors.New("channel: bad settings")

// Bounds of a file.
const (
	// maxSize is the largest file in bytes.
	maxSize = 1 << 20
	// maxEntries is the largest number of elements of a list.
	maxEntries = 1000
	// maxNodeName is the longest name, ID or role in bytes. Names of channels and accounts have at most 64 bytes.
	maxNodeName = 512
	// maxSettingsPrompt is the longest prompt in bytes. It leaves room for the prompt of callbacks.
	maxSettingsPrompt = 12 << 10
	// maxRate is the largest rate limit.
	maxRate = 1000

	maxWord = 64
)

// Settings are the content of a file. They do not change; a changed file gives new ones.
type Settings struct {
	Accounts []Account
	Bindings []Binding
	// Agents are the agents that people can see, in the order of the file.
	Agents []Agent
	// DefaultAgent answers what no binding and no account has an agent for. It may be empty.
	DefaultAgent string
}

// Account is an account of a platform.
type Account struct {
	// Channel is the type of the platform, and Name the name of the account on it: the Channel and Account of origins.
	Channel, Name string
	// Agent answers what no binding matches. If it is empty, DefaultAgent does.
	Agent string
	// Prompt is a further section of the system prompt of every message, or empty.
	Prompt string
	DM     DMPolicy
	Group  GroupPolicy
	// Allowed are the people that DMAllowedOnly answers, by the platform's IDs.
	Allowed []string
	// Approvers may decide about requests for approval of others in the same conversation.
	Approvers []string
	// RateLimit is how many messages of a person are passed on in 60 seconds, 0 for any number.
	RateLimit int
	// Threading says that a message of a group outside of a thread starts one, which the ID of the message names.
	Threading bool
	// Format is the format of answers. If it is empty, the adapter's is used.
	Format text.Format
	Prefix Prefix
	// QuietErrors says that no error texts are sent.
	QuietErrors bool
}

// DMPolicy says whose direct messages are answered. The zero value is DMRespond.
type DMPolicy string

// The policies for direct messages.
const (
	DMRespond     DMPolicy = "respond"
	DMAllowedOnly DMPolicy = "allowed_only"
	DMIgnore      DMPolicy = "ignore"
)

// GroupPolicy says which messages of groups are answered. The zero value is GroupMentionOnly.
type GroupPolicy string

// The policies for messages of groups.
const (
	GroupAll GroupPolicy = "all"
	// GroupMentionOnly answers messages that address the account.
	GroupMentionOnly GroupPolicy = "mention_only"
	// GroupCommandsOnly answers commands.
	GroupCommandsOnly GroupPolicy = "commands_only"
	GroupIgnore       GroupPolicy = "ignore"
)

// Prefix says how the agent's name precedes its answers. The zero value is PrefixOff.
type Prefix string

// The prefixes.
const (
	PrefixOff         Prefix = "off"
	PrefixBracket     Prefix = "bracket"
	PrefixBoldBracket Prefix = "bold_bracket"
)

// Agent is an agent that people can see.
type Agent struct {
	Name, Description string
}

// Binding sends messages to an agent. All conditions that are given must match, and of Roles any. At least one is given.
type Binding struct {
	Agent string
	// Channel is the type of the platform, and Account the name of the account.
	Channel, Account string
	// Peer is the platform's ID of the person, Guild that of the workspace, server or team, and ChannelID that of the room.
	Peer, Guild, ChannelID string
	// Roles are what the person is in the guild.
	Roles []string
}

// Live returns the settings as they are now. It is safe for concurrent use. Call it once for each message.
type Live func() *Settings

// Fixed returns settings that do not change.
func Fixed(s *Settings) Live { return func() *Settings { return s } }

// Prompt returns the prompt of the account of an origin, empty if it has none or is not in the settings. It is a function for
// Prompts of delegation.Config.
func (l Live) Prompt(o topics.Origin) string {
	account, _ := l().Account(o.Channel, o.Account)
	return account.Prompt
}

// Account returns an account.
func (s *Settings) Account(channel, name string) (Account, bool) {
	for _, a := range s.Accounts {
		if a.Channel == channel && a.Name == name {
			return a, true
		}
	}
	return Account{}, false
}
