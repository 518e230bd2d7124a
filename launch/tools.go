package launch

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"skald-connectors/internal/exactjson"
	"skald-connectors/internal/tooldef"
)

// Grant is what is let through: an empty Allow allows all that Deny does not
// name. Accepted has the digest of each accepted tool definition by name
// (internal/tooldef); nil means that none was ever recorded, and then every
// definition passes.
type Grant struct {
	Allow, Deny []string
	Accepted    map[string]string
}

// toolbox judges tools by the grant and by the definitions that were seen.
type toolbox struct {
	grant   Grant
	allow   map[string]bool // nil: all
	deny    map[string]bool
	changed map[string]bool   // seen with another definition than the accepted one
	told    map[string]bool   // on the log
	back    map[string]string // held back, with the digest of what was seen
	known   map[string]string // what Options.Held was told
}

func (b *toolbox) set(g Grant) {
	b.grant, b.allow, b.deny, b.changed, b.back = g, nil, map[string]bool{}, map[string]bool{}, map[string]string{}
	if b.told == nil {
		b.told = map[string]bool{}
	}
	for _, name := range g.Deny {
		b.deny[name] = true
	}
	if len(g.Allow) > 0 {
		b.allow = map[string]bool{}
	}
	for _, name := range g.Allow {
		b.allow[name] = true
	}
}

func (b *toolbox) judge(name []byte) verdict {
	if b.deny[string(name)] || b.allow != nil && !b.allow[string(name)] {
		return forbidden
	}
	if b.grant.Accepted != nil {
		if _, has := b.grant.Accepted[string(name)]; !has || b.changed[string(name)] {
			return held
		}
	}
	return granted
}

// see judges a definition. One in a form that has no digest is no accepted one.
func (b *toolbox) see(def tooldef.Tool, bad bool) verdict {
	v := b.judge([]byte(def.Name))
	if v == forbidden || b.grant.Accepted == nil && !bad {
		return v
	}
	if bad || b.grant.Accepted[def.Name] != def.Digest {
		b.changed[def.Name] = true
		if len(b.back) < maxCancelled {
			b.back[def.Name] = def.Digest
		}
		return held
	}
	delete(b.changed, def.Name)
	delete(b.back, def.Name)
	return granted
}

// tellBack tells what is held back: at the end of a list, since another session may
// have told something else meanwhile, and before it when there is more than was told last.
func (b *toolbox) tellBack(to func(map[string]string, bool), whole bool) {
	if to == nil || !whole && maps.Equal(b.known, b.back) {
		return
	}
	b.known = maps.Clone(b.back)
	to(maps.Clone(b.back), whole)
}

// answer is what the launcher makes of an answer of the upstream's.
type answer struct {
	text     []byte // what the client gets in its place; nil: as it is
	streamed bool   // the client has it already
	failed   bool
	greeting greeting
}

// toolPage is one page of tools/list, judged.
type toolPage struct {
	text    []byte // the page as the client may see it
	changed bool   // text is not what the connector wrote
	granted []string
	held    []string
	cursor  string
}

// readTools judges the definitions of one page; ok is false when it cannot be
// read without doubt.
func (s *Session) readTools(line []byte) (page toolPage, ok bool) {
	doc, repeats, err := exactjson.Parse(line, maxDepth)
	result, _ := doc.Get("result")
	list, _ := result.Get("tools")
	if err != nil || list.Kind != exactjson.Array || slices.ContainsFunc(repeats, outside) {
		return page, false
	}
	if cursor, has := result.Get("nextCursor"); has && cursor.Kind == exactjson.String {
		page.cursor = cursor.Str
	}
	page.text = append(page.text, line[:list.Start+1]...)
	names := map[string]bool{}
	for _, item := range list.Items {
		raw := line[item.Start:item.End]
		def, err := tooldef.Parse(raw)
		if name, has := item.Get("name"); has && err != nil {
			def.Name = name.Str
		}
		twice := names[def.Name]
		names[def.Name] = true
		switch v := s.tools.see(def, err != nil); {
		case v == granted && twice:
			page.changed = true // the first one is enough
		case v == granted:
			titled := s.title(item, def, line)
			if page.granted = append(page.granted, def.Name); len(page.granted) > 1 {
				page.text = append(page.text, ',')
			}
			page.text = append(page.text, titled...)
			page.changed = page.changed || len(titled) != len(raw)
		case v == held:
			page.held = append(page.held, def.Name)
			page.changed = true
		default:
			page.changed = true
		}
	}
	page.text = append(page.text, line[list.End-1:]...)
	s.tellHeld(page.held)
	s.tools.tellBack(s.o.Held, page.cursor == "")
	return page, true
}

// outside tells a repeated key that is not inside a tool's definition.
func outside(r exactjson.Repeat) bool { return !strings.HasPrefix(r.Path, "result.tools[") }

// title gives a definition with the title that the client is to show.
func (s *Session) title(item exactjson.Value, def tooldef.Tool, line []byte) []byte {
	raw := line[item.Start:item.End]
	title := s.o.Titles[def.Name]
	if title == "" {
		title = def.Title
	}
	if title == "" {
		title = tooldef.Pretty(def.Name)
	}
	if title == def.Title {
		return raw
	}
	if old, has := item.Get("title"); has {
		out := append([]byte(nil), line[item.Start:old.Start]...)
		return append(appendQuoted(out, title), line[old.End:item.End]...)
	}
	name, _ := item.Get("name")
	out := append([]byte(nil), line[item.Start:name.End]...)
	out = appendQuoted(append(out, `,"title":`...), title)
	return append(out, line[name.End:item.End]...)
}

// tellHeld says once on the log that a tool is held back.
func (s *Session) tellHeld(names []string) {
	for _, name := range names {
		if s.tools.told[name] || len(s.tools.told) > maxCancelled {
			continue
		}
		s.tools.told[name] = true
		why := "it is new"
		if _, has := s.tools.grant.Accepted[name]; has {
			why = "its definition is not the one that was accepted"
		}
		s.notes.say(s.redactor, "kept from the client: the tool %q of %s: %s (%s); `skald-connectors tools %s` shows it",
			name, s.o.Connector, why, codeChanged, s.o.Name)
	}
}

// noSuchMethod reads the error of an answer.
func noSuchMethod(raw []byte) bool {
	doc, _, err := exactjson.Parse(raw, maxDepth)
	code, _ := doc.Get("code")
	return err == nil && code.Str == strconv.Itoa(methodNotFound)
}

// adaptReply makes of an answer what the client gets; the lock is held.
func (s *Session) adaptReply(c *call, sc *scanner, line []byte) answer {
	if sc.has(fieldError) {
		if c.method == resourcesList && noSuchMethod(sc.raw(line, fieldError)) { // it has resources, and no list of them
			return answer{text: appendResult(nil, c.raw, `{"resources":[`+string(s.statusEntry())+`]}`)}
		}
		return answer{}
	}
	switch {
	case c.method == initialize:
		return s.adaptGreeting(c, line)
	case c.method == toolsList && c.own == ownNone:
		page, ok := s.readTools(line)
		if !ok {
			return answer{text: appendError(nil, c.raw, internalError, textUnreadable, codeInternal), failed: true}
		}
		if !page.changed {
			return answer{}
		}
		return answer{text: page.text}
	case c.method == resourcesList:
		return s.adaptResources(c, line)
	}
	return answer{}
}
