package channel

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lookalikes are the characters that look like those of "[from:" and "hand:" and that compatibility forms of Unicode do not
// already make equal. Case is not folded before, because it changes what some of them look like.
var lookalikes = func() map[rune]string {
	all := map[rune]string{}
	for looks, characters := range map[string]string{
		"f": "ſƒẝꞙꟻϜϝքғҒꓝᖴꜰ", "r": "гᴦⲅꭇꭈꮁʀᎡᏒᖇꓣɼɽɾяЯᴙᴚɹ", "o": "оОοΟσօՕסⲟⲞꓳ०০੦௦௵๐໐၀ⵔ〇0ᴏøØɵӨө", "m": "мМΜꓟᎷᴍⲙⲘᗰϺϻꮇɱ",
		"h": "һҺհНнΗⲎʜᎻꓧᕼᏂꮒꮋħĦђћ", "a": "аАαΑɑᴀᎪꓮᗅ⍺ⲀⲁАꭺ", "n": "пոռɴΝηиИꓠⲚղƞɳᴎ", "d": "ԁԀɗᎠᗞᗪꓓᴅᏧᑯđĐðÐɖ",
		"[": "【〔⟦❲⦗〖〘〚⁅⦋⦍⦏⎡⎣⌈⌊⸢⸤︗︹︻", "]": "】〕⟧❳⦘〗〙〛⁆⦌⦎⦐⎤⎦⌉⌋⸣⸥︘︺︼", ":": "∶꞉ː˸։׃܃܄⁚ⵗ᛬ꓽ፡︰",
		" ": "\u115f\u1160\u2800\u3164\uffa0", // letters and a pattern that are blank
	} {
		for _, c := range characters {
			all[c] = looks
		}
	}
	return all
}()

// look returns what a character looks like, in lower case: nothing if it is not shown, " " for blanks.
func look(r rune) string {
	if looks, ok := lookalikes[r]; ok {
		return looks
	}
	switch {
	case r < utf8.RuneSelf && unicode.IsPrint(r):
		return strings.ToLower(string(r))
	case unicode.In(r, unicode.Z, unicode.White_Space):
		return " "
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Mn, unicode.Me):
		return ""
	}
	var looks strings.Builder
	for _, part := range norm.NFKD.String(string(r)) { // full-width, mathematical and other forms of a letter, with their marks
		switch letter, ok := lookalikes[part]; {
		case ok:
			looks.WriteString(letter)
		case !unicode.In(part, unicode.Mn):
			looks.WriteRune(unicode.ToLower(part))
		}
	}
	return looks.String()
}

// beginsLike reports whether a text begins with what looks like a word and its punctuation, with blanks around the punctuation, and
// how many bytes that is.
func beginsLike(text, want string) (length int, ok bool) {
	punctuation := func(i int) bool { return i < 0 || strings.IndexByte("[:", want[i]) >= 0 }
	matched := 0
	for at, r := range text {
		looks := look(r)
		switch {
		case looks == "", looks == " " && (punctuation(matched) || punctuation(matched-1)):
			continue
		case !strings.HasPrefix(want[matched:], looks):
			return 0, false
		}
		if matched += len(looks); matched == len(want) {
			return at + utf8.RuneLen(r), true
		}
	}
	return 0, false
}

// withoutHand removes what looks like the beginning of the names of results' senders.
func withoutHand(name string) string {
	for {
		length, ok := beginsLike(name, "hand:")
		if !ok {
			return name
		}
		name = strings.TrimSpace(name[length:])
	}
}

// separators end a line, for one reader or another.
const separators = "\n\r\v\f\u0085\u2028\u2029"

// unframed replaces the bracket of each line that looks as if another one had written what follows.
func unframed(text string) string {
	var b strings.Builder
	for text != "" {
		line, rest := text, ""
		if end := strings.IndexAny(text, separators); end >= 0 {
			_, size := utf8.DecodeRuneInString(text[end:])
			line, rest = text[:end+size], text[end+size:]
		}
		b.WriteString(unframedLine(line))
		text = rest
	}
	return b.String()
}

func unframedLine(line string) string {
	_, framed := beginsLike(line, "[from:")
	if !framed {
		if _, framed = beginsLike(line, "[frorn:"); !framed { // r and n together look like m
			return line
		}
	}
	at := strings.IndexFunc(line, func(r rune) bool { return look(r) == "[" })
	_, size := utf8.DecodeRuneInString(line[at:])
	return line[:at] + "(" + line[at+size:]
}
