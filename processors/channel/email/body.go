package email

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // the charsets of mail other than UTF-8
)

const (
	// maxDepth and maxParts bound the MIME structure of a mail.
	maxDepth = 10
	maxParts = 100
	// maxNamed is how many attachments are named.
	maxNamed = 20
	// maxHeader bounds the headers of a mail, and of each part, in bytes.
	maxHeader = 64 << 10
	// maxHTML bounds the HTML that is read, in bytes, relative to the longest text.
	maxHTML = 8
)

var (
	errStructure = errors.New("its MIME structure is too deep or has too many parts")
	errTooLong   = errors.New("its text is too long")
)

// body is what is read of a mail's parts.
type body struct {
	plain, html string
	names       []string // of attachments
	more        int      // attachments that are not named
	parts       int
	limit       int // of the text, in bytes
}

// read reads an entity. The first part of a kind counts. The error is errStructure, errTooLong or one about the syntax.
func (b *body) read(e *message.Entity, depth int) error {
	if b.parts++; depth > maxDepth || b.parts > maxParts {
		return errStructure
	}
	if parts := e.MultipartReader(); parts != nil {
		for {
			part, err := parts.NextPart()
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil && (part == nil || !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err)):
				return fmt.Errorf("its parts cannot be read: %w", err)
			}
			if err := b.read(part, depth+1); err != nil {
				return err
			}
		}
	}
	kind, params, err := e.Header.ContentType()
	if err != nil {
		kind = "text/plain" // the default of RFC 2045, section 5.2
	}
	disposition, dispositionParams, _ := e.Header.ContentDisposition()
	name := cmp.Or(dispositionParams["filename"], params["name"])
	isText := kind == "text/plain" || kind == "text/html"
	switch {
	case !isText || strings.EqualFold(disposition, "attachment") || name != "":
		b.attach(name)
	case kind == "text/plain" && b.plain == "":
		text, err := readText(e.Body, b.limit)
		if err != nil {
			return err
		}
		b.plain = text
	case kind == "text/html" && b.html == "":
		source, err := readText(e.Body, b.limit*maxHTML)
		if err != nil {
			return err
		}
		b.html = source
	}
	return nil
}

func (b *body) attach(name string) {
	if len(b.names) == maxNamed {
		b.more++
		return
	}
	name = cmp.Or(oneLine(name, 100), "without a name")
	b.names = append(b.names, strings.NewReplacer("[", "(", "]", ")").Replace(name))
}

// text returns the text of the mail without the attachments' names.
func (b *body) text() (string, error) {
	s := b.plain
	if strings.TrimSpace(s) == "" && b.html != "" {
		s = clean(htmlText(strings.NewReader(b.html)))
	}
	if len(s) > b.limit {
		return "", errTooLong
	}
	return s, nil
}

// attachments returns a line for each attachment.
func (b *body) attachments() string {
	var s strings.Builder
	for _, name := range b.names {
		s.WriteString("[attachment: " + name + "]\n")
	}
	if b.more > 0 {
		fmt.Fprintf(&s, "[%d more attachments]\n", b.more)
	}
	return strings.TrimSuffix(s.String(), "\n")
}

func readText(r io.Reader, limit int) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if len(raw) > limit {
		return "", errTooLong
	}
	if err != nil {
		return "", fmt.Errorf("its text cannot be read: %w", err)
	}
	return clean(string(raw)), nil
}

// clean returns valid UTF-8 without control characters other than tabs and line feeds.
func clean(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Trim(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s), "\n")
}

// oneLine returns at most so many bytes of a text as a line: without control and formatting characters and line separators.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return s
}
