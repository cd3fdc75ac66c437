% A program of test/reach.py, which says what it must do: with Octave's save, which knows whole files only.
words = argv();
if strcmp(words{1}, "write")
    x = repmat(1:str2double(words{2}) + 1, 1000, 1);
    save("-hdf5", "octave.h5", "x");
else
    load("-hdf5", "octave.h5", "x");
    printf("%d ", x(1000, :));
end
