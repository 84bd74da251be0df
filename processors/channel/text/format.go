package text

// Valid reports whether f is one of the formats. The empty format is valid: it is Markdown.
func (f Format) Valid() bool {
	switch f {
	case "", Markdown, TelegramHTML, SlackMrkdwn, Plain:
		return true
	}
	return false
}
