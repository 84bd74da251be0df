package slack

import (
	"cmp"
	"regexp"
	"strings"
)

// token is a reference in a message's text, https://docs.slack.dev/messaging/formatting-message-text#advanced.
var token = regexp.MustCompile(`<([^<>|\s][^<>|]*)(?:\|([^<>]*))?>`)

var unescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// plain returns a text as the person wrote it: references become readable, escapes are undone, and a mention of the bot at the
// beginning is removed. mentioned says that the bot is mentioned anywhere. The ID of the bot may be empty.
func plain(s, bot string) (words string, mentioned bool) {
	if mention := "<@" + bot; bot != "" {
		for _, m := range token.FindAllStringSubmatch(s, -1) {
			mentioned = mentioned || m[1] == "@"+bot
		}
		for {
			trimmed := strings.TrimSpace(s)
			rest, ok := strings.CutPrefix(trimmed, mention)
			end := strings.IndexByte(rest, '>')
			if !ok || end < 0 || end > 0 && rest[0] != '|' {
				break
			}
			s = strings.TrimLeft(rest[end+1:], " \t\n,:")
		}
	}
	s = token.ReplaceAllStringFunc(s, func(match string) string {
		m := token.FindStringSubmatch(match)
		return reference(m[1], m[2])
	})
	return strings.TrimSpace(unescaper.Replace(s)), mentioned
}

func reference(target, label string) string {
	switch {
	case strings.HasPrefix(target, "@"):
		return "@" + cmp.Or(label, target[1:])
	case strings.HasPrefix(target, "#"):
		return "#" + cmp.Or(label, target[1:])
	case strings.HasPrefix(target, "!"):
		name, _, _ := strings.Cut(target[1:], "^")
		return cmp.Or(label, "@"+name)
	case label == "" || strings.HasSuffix(target, label): // https://slack.com|slack.com
		return target
	default:
		return label + " (" + target + ")"
	}
}
