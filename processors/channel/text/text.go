// Package text renders the Markdown of models for platforms and splits it into messages.
package text

// Format is how a platform writes formatted text.
type Format string

// The formats. The zero value is Markdown.
const (
	// Markdown is passed on unchanged.
	Markdown Format = "markdown"
	// DiscordMarkdown is Discord's dialect (https://support.discord.com/hc/en-us/articles/210298617): a block of code begins and ends
	// at three backticks, whatever fence the text has around it.
	DiscordMarkdown Format = "discord_markdown"
	// TelegramHTML is the HTML subset of Telegram's Bot API (https://core.telegram.org/bots/api#html-style).
	TelegramHTML Format = "telegram_html"
	// SlackMrkdwn is Slack's format (https://docs.slack.dev/messaging/formatting-message-text).
	SlackMrkdwn Format = "slack_mrkdwn"
	// Plain has no formatting.
	Plain Format = "plain_text"
)

// Unit is what a platform counts.
type Unit int

// The units of limits.
const (
	// Bytes of UTF-8.
	Bytes Unit = iota
	// Runes are Unicode code points.
	Runes
	// UTF16 are UTF-16 code units, as in Telegram and Discord.
	UTF16
)

// Limit is the longest text that a platform takes in one message. A Max of 0 is no limit.
type Limit struct {
	Max  int
	Unit Unit
}
