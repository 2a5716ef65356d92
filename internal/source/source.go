// Package source reads our own source: what our state machines are made of, their
// commands and the values of their statuses, against which tables of them, in tests and
// in docs/states.md, are held, so that none can miss a row; and, of the whole module,
// what each package imports, and what the result of a test that builds it depends on.
package source

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Commands lists the commands of the package in dir: the types with a method
// command(), in alphabetical order.
func Commands(dir string) ([]string, error) {
	var names []string
	err := each(dir, func(d ast.Decl) {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || f.Name.Name != "command" || len(f.Type.Params.List) > 0 {
			return
		}
		if t, ok := f.Recv.List[0].Type.(*ast.Ident); ok {
			names = append(names, t.Name)
		}
	})
	slices.Sort(names)
	return names, err
}

// Value is a constant of a string type.
type Value struct {
	Name string // of the constant
	Text string // what it is
	Doc  string // the comment behind it
}

// Values lists the constants of the named type in the package in dir, as declared.
func Values(dir, typ string) ([]Value, error) {
	var vs []Value
	err := each(dir, func(d ast.Decl) {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			return
		}
		for _, s := range g.Specs {
			if v, ok := valueOf(s, typ); ok {
				vs = append(vs, v)
			}
		}
	})
	return vs, err
}

// Docs is what the comments of the package in dir say of its types.
func Docs(dir string) (map[string]string, error) {
	docs := map[string]string{}
	err := each(dir, func(d ast.Decl) {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			return
		}
		for _, s := range g.Specs {
			t := s.(*ast.TypeSpec)
			doc := t.Doc
			if doc == nil && len(g.Specs) == 1 {
				doc = g.Doc
			}
			docs[t.Name.Name] = strings.TrimSpace(doc.Text())
		}
	})
	return docs, err
}

func valueOf(s ast.Spec, typ string) (Value, bool) {
	c, ok := s.(*ast.ValueSpec)
	if !ok || len(c.Values) != 1 {
		return Value{}, false
	}
	t, named := c.Type.(*ast.Ident)
	lit, literal := c.Values[0].(*ast.BasicLit)
	if !named || !literal || t.Name != typ || lit.Kind != token.STRING {
		return Value{}, false
	}
	text, err := strconv.Unquote(lit.Value)
	return Value{c.Names[0].Name, text, strings.TrimSpace(c.Comment.Text())}, err == nil
}

// each calls fn with every declaration of the package, tests left out.
func each(dir string, fn func(ast.Decl)) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f.Name()), nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			fn(d)
		}
	}
	return nil
}
