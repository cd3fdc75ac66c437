% A program of test/reach.py, which says what it must do: with Octave's package netcdf.
pkg load netcdf
words = argv();

% Column n + 1 of the variable becomes n + 1.
function put(file, n)
    netcdf.putVar(file, netcdf.inqVarID(file, "d"), [0 n], [1000 1], repmat(n + 1, 1000, 1));
end

if strcmp(words{1}, "read")
    file = netcdf.open("octave.nc", "NC_NOWRITE");
    values = netcdf.getVar(file, netcdf.inqVarID(file, "d"));
    printf("%d ", values(1000, :));
else
    if exist("octave.nc", "file")
        file = netcdf.open("octave.nc", "NC_WRITE");
    else
        file = netcdf.create("octave.nc", "NC_NETCDF4");
        dimensions = [netcdf.defDim(file, "x", 1000), netcdf.defDim(file, "n", netcdf.getConstant("NC_UNLIMITED"))];
        netcdf.defVar(file, "d", "NC_DOUBLE", dimensions);
        netcdf.endDef(file);
    end
    if strcmp(words{1}, "write")
        put(file, str2double(words{2}));
    else
        put(file, 3);
        netcdf.sync(file);
        put(file, 4);
        puts("ready\n");
        fflush(stdout);
        pause(600);
    end
end
netcdf.close(file);
