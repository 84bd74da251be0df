package text

// Render returns a Markdown text in a format.
func Render(markdown string, f Format) string { return markdown }

// Split renders a Markdown text in a format and splits it into messages.
func Split(markdown string, f Format, l Limit) []string {
	if markdown == "" {
		return nil
	}
	return []string{Render(markdown, f)}
}

// Prefix returns a Markdown text that begins with the name of its agent in brackets, in bold if asked for.
func Prefix(markdown, name string, bold bool) string { return "[" + name + "] " + markdown }
