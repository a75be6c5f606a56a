// Package docs_test holds the documents to the code.
package docs_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/postburner/postburner"

// TestDiagramIsTheImportMap compares the edges of ARCHITECTURE.md's diagram with
// the imports of the packages, tests left out.
func TestDiagramIsTheImportMap(t *testing.T) {
	t.Parallel()
	want := diagram(t)
	got := map[string][]string{}
	for pkg, imports := range importMap(t) {
		for _, path := range imports {
			if rest, ok := strings.CutPrefix(path, module+"/"); ok {
				got[pkg] = append(got[pkg], rest)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/ARCHITECTURE.md and the imports differ (- drawn, + imported):\n%s", diff)
	}
}

// TestLibrariesStayWhereTheyBelong holds the rule that one package alone knows each of these libraries.
func TestLibrariesStayWhereTheyBelong(t *testing.T) {
	t.Parallel()
	owners := map[string][]string{
		"gopkg.in/yaml.v3":                   {"config"},
		"github.com/spf13/cobra":             {"app"},
		"github.com/sirupsen/logrus":         {"app"},
		"github.com/beanstalkd/go-beanstalk": {"beanstalk", "bench"},
		"github.com/alitto/pond/v2":          {"worker"},
	}
	used := map[string]bool{}
	for pkg, imports := range importMap(t) {
		for _, path := range imports {
			for library, allowed := range owners {
				if path != library && !strings.HasPrefix(path, library+"/") {
					continue
				}
				used[library] = true
				if !slices.Contains(allowed, pkg) {
					t.Errorf("%s imports %s, which belongs to %s alone", pkg, path, strings.Join(allowed, " and "))
				}
			}
		}
	}
	for library := range owners {
		if !used[library] {
			t.Errorf("no package imports %s any more: take it off this list", library)
		}
	}
}

// TestNobodyImportsTheProgram keeps app and main at the top of the house.
func TestNobodyImportsTheProgram(t *testing.T) {
	t.Parallel()
	for pkg, imports := range importMap(t) {
		if slices.Contains(imports, module+"/app") && pkg != "main" && pkg != "bench" && !strings.HasPrefix(pkg, "examples/") {
			t.Errorf("%s imports app; only programs may", pkg)
		}
	}
}

// importMap maps each package folder ("main" for the top) to the sorted imports of its non-test files.
func importMap(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && entry.Name() != "..") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")
		if pkg == ".." {
			pkg = "main"
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports[pkg] = append(imports[pkg], name)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("read the imports: %v", err)
	}
	for pkg := range imports {
		slices.Sort(imports[pkg])
		imports[pkg] = slices.Compact(imports[pkg])
	}
	return imports
}

// diagram reads the edges `a --> b & c` of the mermaid block in ARCHITECTURE.md.
func diagram(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```mermaid\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("docs/ARCHITECTURE.md has no mermaid block")
	}
	edges := map[string][]string{}
	for _, edge := range regexp.MustCompile(`(?m)^\s*(\S+) --> (.+)$`).FindAllStringSubmatch(string(block[1]), -1) {
		for to := range strings.SplitSeq(edge[2], "&") {
			edges[edge[1]] = append(edges[edge[1]], strings.TrimSpace(to))
		}
		slices.Sort(edges[edge[1]])
	}
	return edges
}
