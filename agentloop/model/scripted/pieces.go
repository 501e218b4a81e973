package scripted

import "strings"

// pieces splits text after every n-th space. The pieces are not empty, and
// their concatenation is text.
func pieces(text string, n int) []string {
	var out []string
	for text != "" {
		end := 0
		for range n {
			i := strings.IndexByte(text[end:], ' ')
			if i < 0 {
				end = len(text)
				break
			}
			end += i + 1
		}
		out = append(out, text[:end])
		text = text[end:]
	}
	return out
}
