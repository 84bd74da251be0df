package channel

import (
	"strings"
	"unicode"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

// commandName is the name of a command.
type commandName string

// The commands.
const (
	commandAgents  commandName = "agents"
	commandNew     commandName = "new"
	commandStop    commandName = "stop"
	commandStatus  commandName = "status"
	commandApprove commandName = "approve"
	commandDeny    commandName = "deny"
)

// instruction is what a person told the account to do.
type instruction struct {
	Name commandName
	// Code is the beginning of the ID of the request that commandApprove and commandDeny are about, in lower case; empty for the only open one.
	Code string
	// Rest is the reason of commandApprove and commandDeny, and what follows the name of another command. It may be empty.
	Rest string
}

// codeLength is how many characters of a request's ID people are told.
const codeLength = 8

// parseCommand returns the command of an event. Only Inbound.Text is read, which a person wrote: an event with a Decision, or
// with a text of another one, has none. A command is the first word of the text, begins with a slash, and is in any case. A name with the addition "@" and a
// name, as Telegram's clients write it in groups, must be addressed to the account. Any other text is a message.
//
// The first word after /approve is always the code: a misspelled one must not approve another request. The first word after
// /deny is the code if it has at least 8 hexadecimal digits, and otherwise the beginning of the reason.
func parseCommand(in adapter.Inbound) (instruction, bool) {
	text := strings.TrimSpace(in.Text)
	if in.Decision != nil || in.Foreign || !strings.HasPrefix(text, "/") {
		return instruction{}, false
	}
	word, rest := cutWord(text[1:])
	word, addressee, addressed := strings.Cut(word, "@")
	if addressed && (addressee == "" || !in.Mentioned) {
		return instruction{}, false
	}
	c := instruction{Name: commandName(strings.ToLower(word)), Rest: rest}
	switch c.Name {
	case commandAgents, commandNew, commandStop, commandStatus:
	case commandApprove:
		c.Code, c.Rest = cutWord(rest)
	case commandDeny:
		if code, reason := cutWord(rest); isCode(code) {
			c.Code, c.Rest = code, reason
		}
	default:
		return instruction{}, false
	}
	c.Code = strings.ToLower(c.Code)
	return c, true
}

func cutWord(text string) (word, rest string) {
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}

func isCode(word string) bool {
	return len(word) >= codeLength && strings.Trim(strings.ToLower(word), "0123456789abcdef") == ""
}
