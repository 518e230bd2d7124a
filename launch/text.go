package launch

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// appendQuoted writes s as a JSON string in ASCII.
func appendQuoted(out []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	unit := func(u uint16) {
		out = append(out, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
	}
	out = append(out, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r == '\n':
			out = append(out, '\\', 'n')
		case r >= 0x20 && r < 0x7f:
			out = append(out, byte(r))
		case r < 0x10000:
			unit(uint16(r))
		default:
			high, low := utf16.EncodeRune(r)
			unit(uint16(high))
			unit(uint16(low))
		}
	}
	return append(out, '"')
}

func appendNames(out []byte, names []string) []byte {
	out = append(out, '[')
	for i, n := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendQuoted(out, n)
	}
	return append(out, ']')
}

// appendHead begins an answer; id nil is null.
func appendHead(out, id []byte) []byte {
	out = append(out, `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		return append(out, "null"...)
	}
	return append(out, id...)
}

// appendError writes a whole error answer.
func appendError(out, id []byte, code int, message, dataCode string) []byte {
	out = append(appendHead(out, id), `,"error":{"code":`...)
	out = append(strconv.AppendInt(out, int64(code), 10), `,"message":`...)
	out = append(appendQuoted(out, message), `,"data":{"code":`...)
	return append(appendQuoted(out, dataCode), "}}}\n"...)
}

// appendResult writes a whole answer around a JSON value.
func appendResult(out, id []byte, result string) []byte {
	out = append(appendHead(out, id), `,"result":`...)
	return append(append(out, result...), "}\n"...)
}

// appendASCII writes JSON with its characters above ASCII as escapes. They
// stand in strings only.
func appendASCII(out, src []byte) []byte {
	for len(src) > 0 {
		r, n := utf8.DecodeRune(src)
		if r < utf8.RuneSelf {
			out = append(out, src[0])
		} else {
			quoted := appendQuoted(nil, string(r))
			out = append(out, quoted[1:len(quoted)-1]...)
		}
		src = src[n:]
	}
	return out
}
